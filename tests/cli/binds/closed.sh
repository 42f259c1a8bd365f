# A directory that its owner has closed to himself could hide set-id files: the box has his id and can open it again.
as_user
mkdir -p "$TMP/w/closed" "$TMP/w/open"
for mode in 000 055 111 444 300; do
    chmod $mode "$TMP/w/closed"
    says "$PX" exec -v "$TMP/w:/w" -- echo RAN
    stat -c %a "$TMP/w/closed"
done
says "$PX" exec -v "$TMP/w/closed:/w" -- echo RAN
says "$PX" exec -v "$TMP/w:/w:ro" -- echo read-only
chmod 500 "$TMP/w/closed"
says "$PX" exec -v "$TMP/w:/w" -- echo open
says "$PX" exec -v "$TMP/w:/w" -c 'chmod 055 /w/open; chmod 055 /w'
stat -c %a "$TMP/w"
chmod 755 "$TMP/w"
stat -c %a "$TMP/w/open"
chmod -R u+rwx "$TMP/w"
