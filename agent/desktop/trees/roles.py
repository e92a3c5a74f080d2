"""Roles and states of AT-SPI by their numbers, which stay when names change ("push button" became "button" in 2.56)."""

# What each number is called (at-spi2-core 2.46, atspi-constants.h).
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
    """What a role is called; "unknown" for numbers of later versions."""
    return ROLES[number] if 0 <= number < len(ROLES) else "unknown"


def numbers(*names: str) -> frozenset[int]:
    """The numbers of roles."""
    return frozenset(_NUMBER[name] for name in names)


#: What a person clicks, types into or drags.
CONTROLS = numbers(
    "check box", "check menu item", "column header", "combo box", "desktop icon", "dial", "entry", "icon", "link",
    "list item", "menu", "menu item", "page tab", "password text", "push button", "push button menu", "radio button",
    "radio menu item", "scroll bar", "slider", "spin button", "switch", "table cell", "table column header",
    "table row header", "tearoff menu item", "terminal", "text", "toggle button", "tree item", "row header",
    "date editor", "color chooser", "font chooser", "autocomplete", "editbar", "rating", "canvas",
)  # fmt: skip
#: What is only written or drawn there.
TEXTS = numbers(
    "label", "static", "heading", "image", "caption", "paragraph", "tool tip", "notification", "info bar", "alert",
    "progress bar", "level bar", "description term", "description value", "comment", "accelerator label", "math",
    "definition", "block quote",
)  # fmt: skip
#: What other elements belong to.
CONTAINERS = numbers(
    "list", "list box", "table", "tree", "tree table", "menu bar", "popup menu", "page tab list", "tool bar", "form",
    "status bar", "document frame", "document web", "document text", "document spreadsheet", "table row", "landmark",
    "document presentation", "dialog", "article", "description list", "file chooser",
)  # fmt: skip
#: What other elements belong to where it has a name.
NAMED_CONTAINERS = numbers("panel", "grouping", "section", "internal frame", "page", "header", "footer")
#: What is a top-level window.
WINDOWS = numbers("frame", "dialog", "window", "alert", "file chooser", "color chooser", "font chooser")
#: What may lie in a window of its own that no window manager cares for, above the one that it belongs to.
POPUPS = numbers("menu", "popup menu", "combo box", "tool tip", "window", "autocomplete", "list box")
POPUP_MENUS = numbers("popup menu", "tool tip")
FIELDS = numbers("entry", "text", "spin button", "editbar", "autocomplete", "date editor", "paragraph")
RANGES = numbers("slider", "spin button", "progress bar", "level bar", "dial", "scroll bar", "rating")
#: What is dull by itself, but may be clickable in a web page.
SECTIONS = numbers("section", "panel", "image", "static", "label", "table cell", "list item", "paragraph", "heading")
#: What is named by what is written on it.
HOLDERS = CONTROLS | numbers("grouping", "panel", "info bar", "notification", "alert")
ROWS = numbers("list item", "table cell", "tree item", "table row", "menu item", "icon")
HEADERS = numbers("column header", "row header", "table column header", "table row header")
LABELS = numbers("label", "static", "caption")
MENU = _NUMBER["menu"]
POPUP_MENU = _NUMBER["popup menu"]
PASSWORD = _NUMBER["password text"]
COMBO_BOX = _NUMBER["combo box"]
TERMINAL = _NUMBER["terminal"]
APPLICATION = _NUMBER["application"]
MENU_BAR = _NUMBER["menu bar"]
SCROLL_BAR = _NUMBER["scroll bar"]
SCROLL_PANES = numbers("scroll pane", "viewport")
TABLES = numbers("table", "tree table", "tree", "document spreadsheet", "list", "list box", "layered pane")
ALIKE = (  # one thing that some toolkits tell twice, one in the other
    numbers("push button", "toggle button", "push button menu", "combo box"),
    numbers("text", "entry", "spin button", "password text"),
    LABELS | numbers("heading", "paragraph", "section"),
)

ENABLED, SENSITIVE, SHOWING, VISIBLE, EDITABLE, SELECTED = 8, 24, 25, 30, 7, 23
ACTIVE, FOCUSABLE, FOCUSED = 1, 11, 12
#: The states that say how something stands, by their numbers.
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
