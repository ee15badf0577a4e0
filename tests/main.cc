// main() of every test program. A file that a suite reads to list its tests may be missing, as
// outside of the project's folder.
#include <gtest/gtest.h>

#include "core/base/program.h"

int main(int argc, char** argv) {
  return cairn::run_program(argv[0], [&] {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
  });
}
