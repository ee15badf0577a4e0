// Writes the kernels of some_trees.h as one C++ source for the host: write_trees FILE
#include <cstdio>
#include <fstream>
#include <map>

#include "core/base/error.h"
#include "core/base/program.h"
#include "core/kernels/cuda/trees/tree_source.h"
#include "tests/core/kernels/cuda/trees/some_trees.h"

int main(int count, char** given) {
  return cairn::run_program("write_trees", [&] {
    using namespace cairn;  // NOLINT: a program
    if (count != 2) return std::puts("write_trees FILE"), 2;
    std::map<std::string, std::string> sources;
    for (const auto& [what, tree] : testing::trees_with_kernels()) {
      // A product that the tree starts from is stored as float32, or as bfloat16 if it is rounded.
      for (const DType product : {DType::kFloat32, DType::kBfloat16}) {
        const auto made = cuda::tree_source(cuda::Program::of(tree, product));
        CAIRN_CHECK(made.has_value(), "no source of ", what);
        sources[made->source.name] = made->source.text;
      }
    }
    std::ofstream file(given[1]);
    file << "// Written by write_trees.cc.\n#include "
            "\"tests/core/kernels/cuda/trees/compiled_trees.h\"\n\n";
    std::string entries;
    for (const auto& [name, text] : sources) {
      file << text << "\n";
      entries += str("      {\"", name, "\", {R\"cairn(", text, ")cairn\", ", name, "}},\n");
    }
    file << "namespace cairn::testing {\n\n"
         << "const std::map<std::string, CompiledTree>& compiled_trees() {\n"
         << "  static const std::map<std::string, CompiledTree> all = {\n"
         << entries << "  };\n  return all;\n}\n\n}  // namespace cairn::testing\n";
    file.close();
    return file ? 0 : 1;
  });
}
