says "$PX" exec --memory
says "$PX" exec -v
says "$PX" exec -c
