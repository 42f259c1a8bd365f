# A directory that its owner has closed to himself could hide set-id files: the box has his id and can open it again. It
# is searched before the run and after it, and its mode stays.
as_user
mkdir -p "$TMP/w/closed"
cp /usr/bin/id "$TMP/w/closed/id"
for mode in 000 055 111 444 300; do
    chmod 755 "$TMP/w/closed"
    chmod 4755 "$TMP/w/closed/id"
    chmod $mode "$TMP/w/closed"
    says "$PX" exec -v "$TMP/w:/w" -- echo RAN
    says "$PX" exec -v "$TMP/w/closed:/w" -- echo RAN
    chmod 755 "$TMP/w/closed"
    chmod 755 "$TMP/w/closed/id"
    chmod $mode "$TMP/w/closed"
    says "$PX" exec -v "$TMP/w:/w" -- echo searched
    stat -c %a "$TMP/w/closed"
done
says "$PX" exec -v "$TMP/w:/w" -c 'chmod 055 /w'
stat -c %a "$TMP/w"
says "$PX" exec -v "$TMP/w:/w" -c 'chmod 755 /w; echo opened'
chmod 755 "$TMP/w"
cp /usr/bin/id "$TMP/w/unreadable"
chmod 4111 "$TMP/w/unreadable"
says "$PX" exec -v "$TMP/w/unreadable:/w" -- echo RAN
chmod -R u+rwx "$TMP/w"
