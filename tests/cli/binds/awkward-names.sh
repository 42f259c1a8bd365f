# Blanks, quotes, newlines and bytes that are no text.
for name in 'a b' "it's" '"q"' $'new\nline' $'\xff\xfe' '*' ','; do
    mkdir "$TMP/$name"
    echo "in" >"$TMP/$name/f"
    "$PX" exec -v "$TMP/$name:/x/$name:ro" -- cat "/x/$name/f"
done
