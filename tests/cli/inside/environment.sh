# Nothing of the caller's; the same for everybody.
"$PX" exec -- env | sort
