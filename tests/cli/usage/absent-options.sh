# Part of the design, not of this build: refused by name, never ignored.
for words in '--deny *.pem' '--device /dev/kvm'; do
    status=0
    # shellcheck disable=SC2086
    "$PX" exec $words -- echo RAN >"$TMP/out" 2>"$TMP/err" || status=$?
    if [ $status -ne 125 ] || [ -s "$TMP/out" ] || ! grep -q '^PX003  .*not part of this build' "$TMP/err"; then
        echo "$words: exit $status: $(cat "$TMP/out" "$TMP/err")"
    fi
done
says "$PX" exec --deny '*.pem' -- true
