#include "stages/sharpen/sharpen.hpp"

int main(int argc, char** argv) { return carousel::stage_main<carousel::stages::sharpen>(argc, argv); }
