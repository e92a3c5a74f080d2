"""Fields of Qt: `qt_fields.py STATE 5|6`. Commands come on standard input: the number of a reset, one a line."""

import importlib
import sys

import state

core, widgets = (importlib.import_module(f"PyQt{sys.argv[2]}.{name}") for name in ("QtCore", "QtWidgets"))
application = widgets.QApplication(["fields"])
window = widgets.QWidget(None)
window.setWindowTitle("Qt " + sys.argv[2])
window.setFixedSize(*state.SIZE)
fields = {
    "entry": widgets.QLineEdit(window),
    "password": widgets.QLineEdit(window),
    "spin": widgets.QSpinBox(window),
    "combo": widgets.QComboBox(window),
    "text": widgets.QPlainTextEdit(window),
}
for name, field in fields.items():
    field.setGeometry(state.LEFT, state.TOPS[name], state.WIDTH, state.HEIGHTS[name])
fields["password"].setEchoMode(widgets.QLineEdit.EchoMode.Password)
fields["spin"].setRange(0, 100000)
fields["combo"].setEditable(True)
fields["combo"].addItems(["first choice", "second choice"])
lines = {name: fields[name] for name in ("entry", "password")}
lines |= {"spin": fields["spin"].lineEdit(), "combo": fields["combo"].lineEdit()}
entered = [""]


def enter():
    entered[0] = lines["entry"].text()
    state.write(values())


def values():
    return {
        **{name: line.text() for name, line in lines.items()},
        "text": fields["text"].toPlainText(),
        "entered": entered[0],
    }


def reset(number=None):
    for name, line in lines.items():
        line.setText(state.BEGIN[name])
    fields["text"].setPlainText(state.BEGIN["text"])
    entered[0] = ""
    state.write(values(), number)


def command():
    line = sys.stdin.readline()
    application.quit() if not line else reset(int(line))


for line in (*lines.values(), fields["text"]):
    line.textChanged.connect(lambda *_: state.write(values()))
lines["entry"].returnPressed.connect(enter)
notifier = core.QSocketNotifier(0, core.QSocketNotifier.Type.Read)
notifier.activated.connect(lambda *_: command())
window.show()
reset()
application.exec()
