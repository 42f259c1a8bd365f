says "$PX" exec --nope -- true
says "$PX" exec --nope=3 -- true
says "$PX" exec -Z -- true
says "$PX" --nope exec -- true
"$PX" exec --nope -- true
