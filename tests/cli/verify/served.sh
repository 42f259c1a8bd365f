# Names, HTTP and HTTPS are tried without a network: each attack with its twin, whatever the policy says of names.
"$PX" sandbox verify --only G2_,G4_,G5_names,G5_denied,G5_twin,G8_,G9_,G11_,G16_,G17_udp,dns_ --dns 192.0.2.1 \
    --allow-net '*' --host-port 80 >said
sed 's/ *- .*//' said
need curl
"$PX" sandbox verify --only http_,https_request >said
sed 's/ *- .*//' said
