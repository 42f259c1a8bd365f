# The same errors as without a runtime, in the same words.
need runc crun
printf 'not a program\n' >"$TMP/plain"
printf '#!/no/such/interpreter\n' >"$TMP/script"
chmod 755 "$TMP/script"
for runtime in runc crun; do
    for what in "-- no-such-command" "-- /no/such/command" "-v $TMP/plain:/x/plain:ro -- /x/plain" "-v $TMP/script:/x/script:ro -- /x/script" \
        "-w /no/such/place -- true" "-w /etc/passwd -- true"; do
        # shellcheck disable=SC2086
        says "$PX" exec --runtime $runtime $what
    done
done | sed 's/^Why:$//;s/^Fix:$//;/^$/d'
