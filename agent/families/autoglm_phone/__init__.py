"""AutoGLM-Phone."""
