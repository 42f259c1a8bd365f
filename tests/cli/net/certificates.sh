# A box with a network knows the authorities that its host trusts; one without needs none.
need python3
cat /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt 2>/dev/null | grep -q BEGIN || skip 'this host has no certificates'
count='import ssl; print("authorities:", ssl.create_default_context().cert_store_stats()["x509_ca"] > 0)'
"$PX" exec --net outbound -- python3 -c "$count"
"$PX" exec --net host -- python3 -c "$count"
"$PX" exec -c 'test -e /etc/ssl || echo "no network, no certificates"'
"$PX" exec --net outbound -c 'cmp /etc/ssl/cert.pem /etc/ssl/certs/ca-certificates.crt && stat -c "%F %a" /etc/ssl/certs/ca-certificates.crt
{ echo more >>/etc/ssl/certs/ca-certificates.crt; } 2>/dev/null || echo read-only'
# What the caller shows there stands for itself.
mkdir "$TMP/own" && echo mine >"$TMP/own/mine"
"$PX" exec --net outbound -v "$TMP/own:/etc/ssl:ro" -c 'ls /etc/ssl'
"$PX" exec --net outbound -v "$TMP/own/mine:/etc/ssl/cert.pem:ro" -c 'ls /etc/ssl; cat /etc/ssl/cert.pem'
# A bundle that others cannot get at is left out, and the box starts.
if [ "$AS" = root ] && [ ! -e /etc/pki/tls ] && unshare --mount true 2>/dev/null; then
    unshare --mount bash -c 'mount -t tmpfs -o mode=0700 none /etc/ssl && mkdir /etc/ssl/certs && echo hidden >/etc/ssl/certs/ca-certificates.crt &&
        "$0" exec --net host -c "test ! -e /etc/ssl/certs/ca-certificates.crt && echo left out"' "$PX"
else
    echo 'left out'
fi
