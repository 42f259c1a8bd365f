# Whatever the words hold, the error is one JSON text. (The last name is too long for the kernel: found wanting, not absent.)
for word in 'a"b' 'a\b' $'a\nb' $'a\xffb' 'a/b' '%s%n' "$(head -c 3000 /dev/zero | tr '\0' x)"; do
    "$PX" --json exec --memory "$word" -- true >"$TMP/out" || true
    jq -r '.details.code' "$TMP/out"
    "$PX" --json "$word" >"$TMP/out" || true
    jq -r '.details.code' "$TMP/out"
    "$PX" --json exec -- "$word" >"$TMP/out" || true
    jq -r '.details.code' "$TMP/out"
done | sort | uniq -c | sed 's/^ *//'
