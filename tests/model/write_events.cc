// Writes the events that tests/model/read_events.py expects, into the folder it is given: those of
// a run of six steps, which was then taken up again at step 4, in a second file.
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "core/base/program.h"
#include "core/graph/function.h"
#include "core/graph/ops.h"
#include "model/writers/event_file.h"

namespace {

cairn::ConcreteFunction doubled() {
  return cairn::trace(
      [](const std::vector<cairn::TraceArgument>& arguments) {
        const cairn::Array& x = std::get<cairn::Array>(arguments[0]);
        return cairn::Outputs{{"twice", x + x}};
      },
      {cairn::TensorType{cairn::DType::kFloat32, {cairn::Shape::kUnknown, 4}}});
}

void write(const std::string& folder) {
  cairn::EventFile events(folder);
  events.graph(doubled().graph);
  for (int step = 0; step < 6; ++step) events.scalar("train/loss", 1.0 / (step + 1), step);
  std::vector<float> values{std::numeric_limits<float>::quiet_NaN()};
  for (int i = 0; i < 100; ++i) values.push_back(0.25f * static_cast<float>(i * i) - 3);
  events.histogram("weights", values, 2);
  events.histogram("same", std::vector<float>(7, 1.5f), 2);
  events.text("notes", "*learning rate* 0.1 — constant", 1);
  events.flush();

  cairn::EventFile later(folder, 4);
  later.scalar("train/loss", -4, 4);
  later.flush();
}

}  // namespace

int main(int argc, char** argv) {
  return cairn::run_program("write_events", [&] {
    if (argc != 2) return 2;
    write(argv[1]);
    return 0;
  });
}
