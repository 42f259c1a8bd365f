# Every field says what it wants. Nothing ran.
for words in '--memory 12q' '--memory -5m' '--memory 99999999999999999999g' '--memory 0' '--memory 64' '--memory 256k' '--cpus many' '--cpus 0' '--cpus 0.001' '--cpus -1' '--pids none' '--pids 0' \
    '--timeout soon' '--timeout -1' '--timeout 1h1' '--cpu-time x' '--file-size 1z' '--nofile 1.5' '--disk big' '--output-limit lots' \
    '--net wifi' '--require some' '--limits maybe' '--user root' '--user 0' '--user 1000:0' '--user 70000' '--user -1' '--hostname a_b' '--hostname -x' \
    '--tmpfs relative' '--tmpfs /x:size=0' '--tmpfs /x:nope' '-v relative' '-v :/x' '-v /etc:relative' '-v /etc:/../x' '-v /etc:/' '-w relative' '-w /a/../b' \
    '-e =x' '--preset nope' '--env-file /no/such/file'; do
    status=0
    # shellcheck disable=SC2086  # the words are meant to be split
    "$PX" exec $words -- echo RAN >"$TMP/out" 2>"$TMP/err" || status=$?
    if [ $status -ne 125 ] || [ -s "$TMP/out" ] || ! grep -q '^PX0[0-9][0-9]  ' "$TMP/err" ||
        ! grep -q '^Fix:$' "$TMP/err"; then
        echo "$words: exit $status: $(cat "$TMP/out" "$TMP/err")"
    fi
done
echo done
