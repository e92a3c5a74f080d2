"""MAI-UI (Tongyi-MAI, Apache-2.0): navigation in two styles, grounding, and tool calls."""
