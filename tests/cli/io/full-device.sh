# A destination that is full is an error, said and not hidden.
status=0
"$PX" exec -- echo text >/dev/full 2>"$TMP/err" || status=$?
[ $status -ne 0 ] && echo failed
head -1 "$TMP/err"
