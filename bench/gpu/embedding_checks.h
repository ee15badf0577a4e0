// Compares the embedding kernels with plain loops on the processor, on small random cases.
#pragma once

namespace cairn::bench {

// Runs all of them and prints one line per group.
//   Result  how many cases differ; each is named on stderr.
//   Errors  what CUDA refuses, as cairn::Error.
//   Cost    a few seconds.
int check_embedding_tables();
int check_hashed_tables();
int check_cached_tables();

}  // namespace cairn::bench
