"""A window of Qt with one of each control. Runs with the system's Python, which has Qt."""

from PyQt5.QtCore import Qt
from PyQt5.QtWidgets import QApplication, QCheckBox, QComboBox, QLineEdit, QPushButton, QSlider, QVBoxLayout, QWidget

application = QApplication(["probe"])
window = QWidget()
window.setWindowTitle("Qt probe")
layout = QVBoxLayout(window)
combo = QComboBox()
combo.addItems(["Red", "Blue"])
combo.setCurrentIndex(1)
slider = QSlider(Qt.Horizontal)
slider.setRange(0, 50)
slider.setValue(20)
password = QLineEdit("hunter2")
password.setEchoMode(QLineEdit.Password)
for widget in (QPushButton("Press"), QCheckBox("Check"), QLineEdit("written"), password, slider, combo):
    layout.addWidget(widget)
window.move(300, 200)
window.show()
application.exec_()
