"""Sends the last frame of a PipeWire stream on request: the process behind `screen.GStreamerFrames`.

    python3 gstreamer_process.py DESCRIPTOR NODE

Each line on standard input is a request. The reply on standard output is three words (width, height, bytes per line)
and then the lines as BGRX, or three zeros if the frame has not changed. Runs in any Python that has `gi`.
"""

import struct
import sys
import time
from typing import Any

_FIRST = 4.5


def main() -> None:
    """Serve until standard input ends."""
    import gi  # type: ignore[import-not-found, unused-ignore]

    gi.require_version("Gst", "1.0")
    gi.require_version("GstVideo", "1.0")
    from gi.repository import Gst, GstVideo  # type: ignore[import-not-found, unused-ignore]

    Gst.init(None)
    pipeline = Gst.parse_launch(
        f"pipewiresrc fd={int(sys.argv[1])} path={int(sys.argv[2])} always-copy=true ! videoconvert ! "
        "video/x-raw,format=BGRx ! appsink name=sink max-buffers=1 drop=true sync=false"
    )
    sink: Any = pipeline.get_by_name("sink")
    pipeline.set_state(Gst.State.PLAYING)
    last, out = None, sys.stdout.buffer
    for _ in sys.stdin:
        deadline = time.monotonic() + _FIRST
        while (sample := sink.get_property("last-sample")) is None and time.monotonic() < deadline:
            message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
            if message is not None:
                sys.exit(str(message.parse_error()[0].message))
            time.sleep(0.01)
        buffer = None if sample is None else sample.get_buffer()
        if buffer is None or buffer.pts == last:
            out.write(struct.pack("=III", 0, 0, 0))
        else:
            last = buffer.pts
            info = GstVideo.VideoInfo.new_from_caps(sample.get_caps())
            data = buffer.extract_dup(0, buffer.get_size())
            out.write(struct.pack("=III", info.width, info.height, info.stride[0]))
            out.write(data[: info.stride[0] * info.height])
        out.flush()
    pipeline.set_state(Gst.State.NULL)


if __name__ == "__main__":
    main()
