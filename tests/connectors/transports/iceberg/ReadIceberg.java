import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.CloseableIterable;

/** Prints the rows of the Iceberg table that a metadata file describes, and the summary of its newest snapshot. */
public class ReadIceberg {
  public static void main(String[] arguments) throws Exception {
    Table table = new BaseTable(new StaticTableOperations(arguments[0], new HadoopFileIO(new Configuration())), "table");
    try (CloseableIterable<Record> rows = IcebergGenerics.read(table).build()) {
      for (Record row : rows) {
        System.out.println("row " + row);
      }
    }
    System.out.println("summary " + table.currentSnapshot().summary());
  }
}
