says "$PX" exec --runtime docker -- true
says "$PX" exec --runtime '' -- true
