#include "stages/fused/fused.hpp"

int main(int argc, char** argv) { return carousel::stages::stage_main<carousel::stages::fused>(argc, argv); }
