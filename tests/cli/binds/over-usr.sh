# A place of the base that exists can be covered, directory or file.
mkdir "$TMP/d"
echo covered >"$TMP/d/f"
printf '#!/bin/sh\necho replaced\n' >"$TMP/tool"
chmod 755 "$TMP/tool"
"$PX" exec -v "$TMP/d:/usr/share/doc:ro" -c 'cat /usr/share/doc/f'
"$PX" exec -v "$TMP/tool:/usr/bin/factor:ro" -- factor
