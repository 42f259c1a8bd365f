# Whatever the box tries, no set-id file of the caller's comes out of it.
mkdir "$TMP/w"
chmod 777 "$TMP/w"
cp /usr/bin/id "$TMP/w/old"
"$PX" exec -v "$TMP/w:/w" -c 'cp /usr/bin/id /w/id; chmod 755 /w/id; for f in /w/id /w/old; do chmod u+s $f; chmod 4755 $f; chmod g+s $f; done; install -m 6755 /usr/bin/id /w/id2; mkdir -m 2777 /w/dir' 2>/dev/null || true
find "$TMP/w" -type f -perm /6000
echo done
