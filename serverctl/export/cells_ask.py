"""The notebook's cells that ask the server something; they come after `cells_serve`. `notebook` fills in @NAMES@."""

from serverctl.export.cells_serve import Cell

_DRAW_TEXT = """
## 5. A screenshot

A settings window, drawn here: it is yours to use, and always the same.
"""

_DRAW = '''
from PIL import Image, ImageDraw, ImageFont


def draw_settings(width=1280, height=800):
    """A settings window, and the box of its "Dark mode" switch."""
    image = Image.new("RGB", (width, height), (36, 62, 99))
    draw = ImageDraw.Draw(image)

    def text(x, y, words, size=20, fill=(30, 30, 30)):
        draw.text((x, y), words, fill, ImageFont.load_default(size))

    draw.rounded_rectangle((140, 80, 1140, 720), 14, (250, 250, 250))
    draw.rounded_rectangle((140, 80, 1140, 130), 14, (225, 227, 230))
    text(160, 92, "Settings", 22)
    for number, name in enumerate(("Network", "Display", "Appearance", "Sound", "Power", "Privacy")):
        top = 160 + 60 * number
        if name == "Appearance":
            draw.rounded_rectangle((155, top - 8, 375, top + 38), 8, (208, 224, 247))
        text(175, top, name)
    draw.line((390, 130, 390, 720), (215, 215, 215), 2)
    text(430, 160, "Appearance", 28)
    boxes = {}
    for number, (name, on) in enumerate((("Dark mode", False), ("Large text", False), ("Animations", True))):
        top = 230 + 90 * number
        text(430, top, name, 22)
        boxes[name] = box = (1020, top - 2, 1084, top + 32)
        draw.rounded_rectangle(box, 17, (53, 132, 228) if on else (190, 190, 190))
        knob = box[2] - 31 if on else box[0] + 3
        draw.ellipse((knob, box[1] + 3, knob + 28, box[3] - 3), (255, 255, 255))
        draw.line((430, top + 60, 1100, top + 60), (230, 230, 230))
    return image, boxes["Dark mode"]


screenshot, switch = draw_settings()
display(screenshot)
'''

_ASK_TEXT = """
## 6. Ask where to click

One question, with the `openai` client, as any program would ask. The picture is sent as it is: the server itself fits
it to the model's grid of picture tokens (to multiples of 32 pixels for MAI-UI and Qwen3-VL).
"""

_ASK = '''
import base64
import io

from openai import OpenAI

SYSTEM = """@SYSTEM@"""
QUESTION = "Turn on dark mode: the switch in the row Dark mode"

file = io.BytesIO()
screenshot.save(file, "PNG")
picture = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
client = OpenAI(base_url=f"http://127.0.0.1:{PORT}/v1", api_key=KEY, timeout=300)
begin = time.monotonic()
completion = client.chat.completions.create(
    model=MODEL,
    temperature=0,
    max_tokens=1024,
    messages=[
        {"role": "system", "content": SYSTEM},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": QUESTION + "\\n"},
                {"type": "image_url", "image_url": {"url": picture}},
            ],
        },
    ],
)
answer = completion.choices[0].message.content or ""
print(answer)
usage = completion.usage
print(f"\\n{time.monotonic() - begin:.1f} s; {usage.prompt_tokens} tokens in, {usage.completion_tokens} out")
'''

_POINT_TEXT = """
## 7. The point on the picture

The answer's coordinates are not pixels: MAI-UI's grounding counts both axes from 0 to 1000, whatever the size of the
picture. So x is divided by 1000 and multiplied by the picture's width, y by its height.
"""

_POINT = r'''
DIVISOR = @DIVISOR@  # None: this model's answers are in pixels of the picture as the server resized it, not known here


def find_point(text):
    """The last [x, y] after the thinking, in the model's own units; None where there is none."""
    said = re.split(r"</grounding_think>|</think(?:ing)?>", text)[-1]
    number = r"(-?\d+(?:\.\d+)?)"
    pairs = re.findall(rf"\[\s*{number}\s*,\s*{number}\s*\]", said)
    return tuple(float(part) for part in pairs[-1]) if pairs else None


found = find_point(answer)
POINT = None
if found is None:
    print("The answer has no point.")
elif DIVISOR is None:
    print(f"The answer's point is {found}; what this model counts in is not known to this notebook.")
else:
    POINT = (found[0] / DIVISOR * screenshot.width, found[1] / DIVISOR * screenshot.height)
    x, y = POINT
    marked = screenshot.copy()
    draw = ImageDraw.Draw(marked)
    draw.ellipse((x - 22, y - 22, x + 22, y + 22), outline=(220, 30, 30), width=5)
    draw.line((x - 34, y, x + 34, y), (220, 30, 30), 3)
    draw.line((x, y - 34, x, y + 34), (220, 30, 30), 3)
    display(marked)
    hit = switch[0] <= x <= switch[2] and switch[1] <= y <= switch[3]
    where = "on the switch." if hit else "beside the switch."
    print(f"{found} of {DIVISOR} is the pixel ({x:.0f}, {y:.0f}): {where}")
'''

_METRICS_TEXT = """
## 8. What the server says of itself

The KV cache holds what the model has read; with the prefix cache the same beginning of a prompt is not read twice. Run
cells 6 and 8 again: the hit rate rises, because system text and picture are known by then.
"""

_METRICS = '''
def total(text, name):
    """A metric's values added up; None where the server does not report it."""
    values = [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith((name + "{", name + " "))]
    return sum(values) if values else None


metrics = ask("/metrics")[1]
info = dict(re.findall(r'(\\w+)="([^"]*)"', next(iter(re.findall(r"vllm:cache_config_info{(.*)}", metrics)), "")))
tokens = info.get("kv_cache_size_tokens")
if not tokens and info.get("num_gpu_blocks", "None") != "None":
    tokens = int(info["num_gpu_blocks"]) * int(info["block_size"])
used = total(metrics, "vllm:kv_cache_usage_perc")
hits, asked = (total(metrics, f"vllm:prefix_cache_{what}_total") for what in ("hits", "queries"))
print(f"KV cache: {int(tokens):,} tokens" if tokens else "KV cache: its size is not reported")
print("  in use now:", "not reported" if used is None else f"{used:.1%}")
print("Prefix cache hit rate:", f"{hits / asked:.0%} of {asked:,.0f} prompt tokens" if asked else "nothing asked yet")
'''

_STOP_TEXT = """
## 9. Stop the server

Gives the card's memory back. (Ending the session does it too.)
"""

_STOP = """
stop()
print("Stopped.")
"""

ASK: tuple[Cell, ...] = (
    Cell("draw-text", "markdown", _DRAW_TEXT),
    Cell("draw", "code", _DRAW),
    Cell("ask-text", "markdown", _ASK_TEXT),
    Cell("ask", "code", _ASK),
    Cell("point-text", "markdown", _POINT_TEXT),
    Cell("point", "code", _POINT),
    Cell("metrics-text", "markdown", _METRICS_TEXT),
    Cell("metrics", "code", _METRICS),
    Cell("stop-text", "markdown", _STOP_TEXT),
    Cell("stop", "code", _STOP),
)
