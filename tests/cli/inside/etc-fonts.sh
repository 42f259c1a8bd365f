# fontconfig has the host's rules.
[ -r /etc/fonts/fonts.conf ] && [ -x /usr/bin/fc-match ] || skip 'there is no fontconfig here'
"$PX" exec -c 'fc-match sans >/dev/null && ls /etc/fonts/fonts.conf && touch /etc/fonts/conf.d/x 2>/dev/null || echo read-only' 2>&1
