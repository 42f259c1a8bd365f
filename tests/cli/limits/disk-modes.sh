# The directories are otherwise what they are without it.
"$PX" exec -c 'stat -c "%a %U %n" ~ /tmp /dev/shm' >"$TMP/without"
"$PX" exec --disk 4m -c 'stat -c "%a %U %n" ~ /tmp /dev/shm' | diff "$TMP/without" - && echo same
"$PX" exec --disk 4m -c 'cp /usr/bin/true /dev/shm/t; /dev/shm/t || echo noexec' 2>/dev/null
