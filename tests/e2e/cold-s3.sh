#!/bin/sh
# SPDX-License-Identifier: MIT
# Cold storage on a real S3 server, and the vendor's client reads what we wrote there.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/loop.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/s3.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/hosttests.sh"
build=${SB_TOP_BUILDDIR:-.}

[ -n "${SB_COLD_FULL-}" ] || skip_all "slow: say SB_COLD_FULL=1"
/usr/bin/python3 -c 'import boto3' 2>/dev/null || skip_all "python3-boto3 is not installed"
loop_mount ext4 || skip_all "$loop_why"
s3_start || skip_all "$s3_why"
check "a bucket is made" s3_bucket cold
export SB_TEST_STORAGE=overlay SB_TEST_PLACE="$place" SB_TEST_COLD=s3://cold/tests

relay test-host-cold
check "our listing is the vendor's" sh -c '[ "$1" = "$2" ]' sh \
	"$("$build/sbctl" cold ls s3://cold/tests/1 | awk '{ print $1 }' | sort -u)" \
	"$(boto "
pages = s3.get_paginator('list_objects_v2').paginate(Bucket='cold', Prefix='tests/1/')
keys = [o['Key'] for p in pages for o in p.get('Contents', [])]
for d in sorted({k.split('/')[4] for k in keys if '/sessions/' in k and '/log-' in k}):
    print(d[:-33])
")"
check "the vendor's client reads our archives" boto "
import hashlib
pages = s3.get_paginator('list_objects_v2').paginate(Bucket='cold', Prefix='tests/1/')
keys = [o['Key'] for p in pages for o in p.get('Contents', [])]
index = [k for k in keys if k.endswith('.index')]
assert index, keys
for k in index:
    head, _, rest = s3.get_object(Bucket='cold', Key=k)['Body'].read().partition(b'\n')
    assert hashlib.sha256(rest).hexdigest() == head.split()[4].decode(), k
"
must_fail "a wrong secret is refused" 1 env AWS_SECRET_ACCESS_KEY=wrong "$build/sbctl" cold ls \
	s3://cold/tests
is "in one line that says so" \
	"$(printf '%s\n' "$output" | grep -c 'HTTP 403 SignatureDoesNotMatch')" 1
must_fail "no bucket, no store" 1 "$build/sbctl" cold ls s3://nobody/x

s3_start plain || skip_all "$s3_why"
s3_bucket cold
must_fail "a store that cannot make objects conditionally is refused" 1 "$build/sbctl" cold ls \
	s3://cold/x
is "and told why" "$(printf '%s\n' "$output" | grep -c 'If-None-Match')" 1
finish
