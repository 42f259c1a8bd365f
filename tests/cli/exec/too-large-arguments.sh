# The kernel's bound is a quarter of the stack limit, for words and variables together. The caller gets them to px under a
# larger one; the box runs under its own, and says what is wrong.
block=$(head -c 100000 /dev/zero | tr '\0' a)
for ((i = 0; i < 30; i++)); do
    printf 'V%d=%s\n' $i "$block"
done >"$TMP/env"
split -l 9 "$TMP/env" "$TMP/part."      # a file may have a megabyte
files=()
for part in "$TMP"/part.*; do
    files+=(--env-file "$part")
done
says "$PX" exec "${files[@]}" -- true
