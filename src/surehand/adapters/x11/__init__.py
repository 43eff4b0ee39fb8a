"""The X11 adapter: windows, pixels, input and the person's own input, through xcffib. Holds no rule."""
