// S3 and what speaks its language (MinIO, Ceph, Swift's s3api, moto).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "storage/object_store/http_client.h"
#include "storage/object_store/object_store.h"
#include "storage/object_store/s3_signature.h"

namespace cairn::storage {

struct S3Options {
  std::string endpoint;  // "https://s3.eu-central-1.amazonaws.com"; buckets are part of the path
  std::string region = "us-east-1";
  std::string bucket;
  S3Credentials credentials;
  // A file above this size is sent in parts of it (or of more, where there would be more than
  // 10,000), `parts_at_once` of them at a time, which are in memory.
  std::uint64_t part_bytes = std::uint64_t{16} << 20;
  int parts_at_once = 4;
  HttpLimits limits;
  // A request that the network or the store fails (5xx, 429, a cut connection) is sent again, at
  // most so often, after a pause that doubles from `pause` up to 5 s.
  int attempts = 6;
  Duration pause = std::chrono::milliseconds(200);
  std::function<std::int64_t()> wall_microseconds = {};  // empty: the system's

  // AWS_ENDPOINT_URL (empty: Amazon's of the region), AWS_REGION, AWS_ACCESS_KEY_ID,
  // AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
  //   Errors  FailedPrecondition: there are no credentials.
  static S3Options from_environment(const std::string& bucket);
};

std::shared_ptr<ObjectStore> make_s3_store(S3Options options);

}  // namespace cairn::storage
