for place in / /etc /usr /usr/bin /bin /lib /proc/sys/kernel /sys /dev /root /var /home; do
    "$PX" exec -c "(echo x >$place/px-test) 2>/dev/null && echo 'can write $place'; mkdir $place/px-dir 2>/dev/null && echo 'can mkdir $place'; true"
done
"$PX" exec -c '(echo x >>/etc/passwd) 2>/dev/null && echo "can change /etc/passwd"; rm -f /usr/bin/env 2>/dev/null && echo "can remove"; true'
[ ! -e /usr/px-test ]
echo done
