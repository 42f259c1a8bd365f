# No more than its size, and no more files than fit.
"$PX" exec --tmpfs /x:size=1m -c 'head -c 2m /dev/zero >/x/f 2>/tmp/err; grep -c "No space left" /tmp/err; stat -c %s /x/f'
"$PX" exec --tmpfs /x:size=1m -c 'i=0; while [ $i -lt 3000 ] && true >/x/$i; do i=$((i + 1)); done 2>/dev/null; [ $i -lt 2000 ] && echo bounded'
