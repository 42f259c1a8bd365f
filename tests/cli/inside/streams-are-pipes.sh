# Never the caller's own file.
echo text >"$TMP/in"
"$PX" exec -i -c 'for i in 0 1 2; do readlink /proc/$$/fd/$i; done | sed "s/:.*//"' <"$TMP/in" >"$TMP/out" 2>"$TMP/err"
cat "$TMP/out"
"$PX" exec -c 'readlink /proc/$$/fd/0'
