#include "stages/fragment/fragment.hpp"

int main(int argc, char** argv) { return carousel::stage_main<carousel::stages::fragment>(argc, argv); }
