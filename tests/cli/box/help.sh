# Help for the whole and from every verb.
"$PX" box --help >"$TMP/help"
grep -c '^  [a-z]' "$TMP/help"
for verb in start 'exec x' list show logs attach copy signal stop; do
    case $verb in exec*) continue ;; esac
    "$PX" box $verb --help | cmp - "$TMP/help"
done
"$PX" help box | cmp - "$TMP/help"
grep '^Usage' "$TMP/help"
