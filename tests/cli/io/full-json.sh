# Also for what px itself prints.
for words in '--json exec -- true' 'exec --help' 'help' '--version' 'policy show' 'exec --plan -- true' 'explain' 'explain PX013' 'completion bash'; do
    status=0
    # shellcheck disable=SC2086
    "$PX" $words >/dev/full || status=$?
    [ $status -ne 0 ] || echo "px $words: exit 0"
done
