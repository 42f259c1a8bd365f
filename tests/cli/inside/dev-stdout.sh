# Scripts write to the streams by these names, also when root started the box.
echo in >"$TMP/in"
"$PX" exec -i -c 'cat /dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr; echo fd >/dev/fd/1; echo in | cat /dev/stdin' <"$TMP/in"
