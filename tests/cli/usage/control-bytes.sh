# What the caller wrote is shown without what would reach a terminal.
"$PX" exec --memory $'5\e[31m\a' -- true 2>"$TMP/err" || true
"$PX" $'\e[2Jx' 2>>"$TMP/err" || true
"$PX" exec $'--\e[2J' 2>>"$TMP/err" || true
"$PX" exec -- $'no\e[31mcolour' 2>>"$TMP/err" || true
LC_ALL=C grep -c '[[:cntrl:]]' "$TMP/err" || true
