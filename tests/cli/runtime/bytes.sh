# JSON is Unicode, a command line is not: arguments and variables come through byte for byte, in and out.
need runc crun
head -c 3m /dev/urandom >"$TMP/in"
for runtime in runc crun; do
    "$PX" exec --runtime $runtime -e X=$'\xff\x01' -- /bin/sh -c 'printf %s "$1$X"' sh $'\xfe\x80' | od -An -tx1
    "$PX" exec --runtime $runtime -i -- cat <"$TMP/in" | cmp - "$TMP/in" && echo same
    says "$PX" exec --runtime $runtime -v "$TMP/in:/x/"$'\xff' -- true | sed '/^Why:$/d;/^Fix:$/d'
done
