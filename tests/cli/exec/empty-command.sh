says "$PX" exec -- ''
says "$PX" exec --
says "$PX" exec
