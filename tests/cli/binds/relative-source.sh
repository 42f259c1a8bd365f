mkdir "$TMP/here"
echo relative >"$TMP/here/f"
cd "$TMP"
"$PX" exec -v here:/x:ro -v ./here/f:/y:ro -c 'cat /x/f /y'
cd here
"$PX" exec -v .:/x:ro -v ../here:/z:ro -c 'cat /x/f /z/f'
