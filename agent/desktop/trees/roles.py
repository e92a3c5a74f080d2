"""AT-SPI's roles and states by number. Numbers stay when names change ("push button" became "button" in 2.56)."""

from agent.core.roles import role_group

# The role names in the order of their numbers (at-spi2-core 2.46, atspi-constants.h).
_NAMES = (
    "invalid,accelerator label,alert,animation,arrow,calendar,canvas,check box,check menu item,"
    "color chooser,column header,combo box,date editor,desktop icon,desktop frame,dial,dialog,"
    "directory pane,drawing area,file chooser,filler,focus traversable,font chooser,frame,glass pane,"
    "html container,icon,image,internal frame,label,layered pane,list,list item,menu,menu bar,"
    "menu item,option pane,page tab,page tab list,panel,password text,popup menu,progress bar,"
    "push button,radio button,radio menu item,root pane,row header,scroll bar,scroll pane,separator,"
    "slider,spin button,split pane,status bar,table,table cell,table column header,table row header,"
    "tearoff menu item,terminal,text,toggle button,tool bar,tool tip,tree,tree table,unknown,viewport,"
    "window,extended,header,footer,paragraph,ruler,application,autocomplete,editbar,embedded,entry,"
    "chart,caption,document frame,heading,page,section,redundant object,form,link,input method window,"
    "table row,tree item,document spreadsheet,document presentation,document text,document web,"
    "document email,comment,list box,grouping,image map,notification,info bar,level bar,title bar,"
    "block quote,audio,video,definition,article,landmark,log,marquee,math,rating,timer,static,"
    "math fraction,math root,subscript,superscript,description list,description term,description value,"
    "footnote,content deletion,content insertion,mark,suggestion,push button menu,switch"
)
ROLES = tuple(_NAMES.split(","))
_NUMBER = {name: number for number, name in enumerate(ROLES)}


def role_name(number: int) -> str:
    """Return the name of a role; "unknown" for numbers of later versions."""
    return ROLES[number] if 0 <= number < len(ROLES) else "unknown"


def numbers(*names: str) -> frozenset[int]:
    """Return the numbers of roles."""
    return frozenset(_NUMBER[name] for name in names)


def group(name: str) -> frozenset[int]:
    """Return the numbers of a group of roles."""
    return numbers(*role_group(name))


#: Groups of roles by their numbers; configs/roles.toml says what they are for.
CONTROLS, HOLDERS, FIELDS, RANGES = map(group, ("controls", "holders", "fields", "ranges"))
TEXTS, LABELS, ROWS, HEADERS = map(group, ("written", "labels", "named rows", "headers"))
CONTAINERS, NAMED_CONTAINERS, SECTIONS = map(group, ("parts", "named parts", "sections"))
WINDOWS, POPUPS, POPUP_MENUS = map(group, ("top-level windows", "popups", "popup menus"))
SCROLL_PANES, TABLES = map(group, ("scroll panes", "tables"))
DIALOGS = numbers("dialog", "alert")
MENU = _NUMBER["menu"]
POPUP_MENU = _NUMBER["popup menu"]
PASSWORD = _NUMBER["password text"]
COMBO_BOX = _NUMBER["combo box"]
PUSH_BUTTON = _NUMBER["push button"]
TERMINAL = _NUMBER["terminal"]
DOCUMENT_WEB = _NUMBER["document web"]
MENU_BAR = _NUMBER["menu bar"]
MENU_ITEM = _NUMBER["menu item"]
SCROLL_BAR = _NUMBER["scroll bar"]
ALIKE = (  # some toolkits have two nested nodes for one thing, with roles of the same set
    numbers("push button", "toggle button", "push button menu", "combo box"),
    numbers("text", "entry", "spin button", "password text"),
    LABELS | numbers("heading", "paragraph", "section"),
)

ENABLED, SENSITIVE, SHOWING, VISIBLE, EDITABLE, SELECTED = 8, 24, 25, 30, 7, 23
ACTIVE, FOCUSABLE, FOCUSED, DEFAULT = 1, 11, 12, 39
#: The states that elements have, by number.
STATES = {
    1: "active", 3: "busy", 4: "checked", 5: "collapsed", 7: "editable", 9: "expandable", 10: "expanded",
    11: "focusable", 12: "focused", 16: "modal", 17: "multi line", 18: "multiselectable", 20: "pressed",
    22: "selectable", 23: "selected", 32: "indeterminate", 33: "required", 36: "invalid entry", 39: "default",
    40: "visited", 41: "checkable", 42: "has popup", 43: "read only",
}  # fmt: skip


def has(states: int, number: int) -> bool:
    """Whether a state is set."""
    return bool(states >> number & 1)


def alike(one: int, other: int) -> bool:
    """Whether two roles may stand for the same thing."""
    return one == other or any(one in group and other in group for group in ALIKE)
