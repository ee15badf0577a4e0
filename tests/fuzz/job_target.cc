#include "tests/fuzz/refusal.h"
#include "tools/job/spec/job.h"

namespace cairn::fuzz {

void job(Bytes input) {
  may_refuse([&] { tools::parse_job(std::string(text(input)), "/jobs/job.toml"); });
}

}  // namespace cairn::fuzz
