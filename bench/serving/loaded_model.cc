// cairn-bench-loaded-model MODEL EXAMPLES [SECONDS]: examples a second that LoadedModel predicts,
// in batches of that many, on one thread: the yardstick of what a server makes of the same model.
// The batch is as a client sends it to the server, of columns in which ids are 0 and numbers 0.5.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/base/clock.h"
#include "core/base/program.h"
#include "model/saved/loaded_model.h"

namespace {

cairn::Tensor column(const cairn::ColumnSpec& of, std::int64_t examples) {
  cairn::Shape shape = of.type.shape.with_dim(0, examples);
  cairn::Tensor made = cairn::Tensor::zeros(of.type.dtype, std::move(shape));
  if (of.type.dtype == cairn::DType::kFloat32)
    std::ranges::fill(made.mutable_values<float>(), 0.5f);
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-loaded-model", [&] {
    if (argc < 3) throw cairn::InvalidArgumentError("MODEL EXAMPLES [SECONDS] are wanted");
    cairn::LoadedModel model = cairn::LoadedModel::load(argv[1]);
    const std::int64_t examples = std::atoll(argv[2]);
    const std::chrono::duration<double> wanted(argc > 3 ? std::atof(argv[3]) : 1.0);
    cairn::Element batch;
    for (const cairn::ColumnSpec& each : model.about().input.columns)
      batch.push_back(column(each, examples));
    for (int i = 0; i < 100; ++i) model.predict(batch);
    const cairn::TimePoint began = cairn::system_clock().now();
    std::int64_t runs = 0;
    std::chrono::duration<double> took{};
    for (; took < wanted; took = cairn::system_clock().now() - began)
      for (int i = 0; i < 50; ++i, ++runs) model.predict(batch);
    std::printf("%.0f\n", static_cast<double>(runs * examples) / took.count());
    return 0;
  });
}
