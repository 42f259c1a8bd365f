# Output that is no text is replaced, never a broken document; control characters and quotes are escaped.
need jq
"$PX" --json exec -c 'printf "a\377\376b\0c\033[31m\"\\\\\n\303\244"' >"$TMP/out"
jq -c .stdout "$TMP/out"
LC_ALL=C tr -d '\n' <"$TMP/out" | LC_ALL=C grep -c '[[:cntrl:]]' || true
