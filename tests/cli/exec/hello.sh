# The first thing anybody types.
"$PX" exec -- echo hello
