// One run of a random program (random_fit.h) as a process of its own, which kills itself; what it
// came to is in FOLDER/ended:
//   killed_fit SEED FOLDER AT EPOCH STEP      AT below 0: not at all
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/base/program.h"
#include "tests/model/random_fit.h"

int main(int argc, char** argv) {
  return cairn::run_program("killed_fit", [&] {
    if (argc != 6) return 2;
    cairn::testing::Death death;
    if (const int at = std::atoi(argv[3]); at >= 0)
      death = {.at = static_cast<cairn::testing::Death::At>(at),
               .epoch = std::atoi(argv[4]),
               .step = std::atoi(argv[5]),
               .die = [] { std::raise(SIGKILL); }};
    cairn::testing::RandomFit fit(std::strtoull(argv[1], nullptr, 10), argv[2], death);
    const std::string ended = fit.run();
    std::ofstream(std::string(argv[2]) + "/ended") << ended;
    return 0;
  });
}
