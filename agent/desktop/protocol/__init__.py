"""What every display system implements: desktop, hand, windows, elements, clipboard, witness."""
