# Bounds that every box has.
"$PX" exec -c 'ulimit -c; ulimit -n; umask'
