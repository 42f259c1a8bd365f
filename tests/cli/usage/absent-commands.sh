for name in serve oci; do
    status=0
    "$PX" $name >"$TMP/out" 2>"$TMP/err" || status=$?
    if [ $status -ne 2 ] || [ -s "$TMP/out" ] || ! grep -q "^PX003  .px $name. is not part of this build" "$TMP/err"; then
        echo "$name: exit $status: $(cat "$TMP/out" "$TMP/err")"
    fi
done
says "$PX" nosuch
says "$PX" ''
